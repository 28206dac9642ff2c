import { UnknownBookingError } from "../../errors.js";
import { done } from "../answer.js";
import { operation } from "../operation.js";
import { doneAnswer, reservationAnswer } from "../schemas/answers.js";
import { cachedTokensBody, outputBlockBody, reservationBody, reserveRequestOf } from "../schemas/reservations.js";
import { rankWire } from "./selection.js";

const BOOKING = "/reservations/{selection_id}";

export const reservationOperations = [
  operation({
    id: "reserve",
    method: "POST",
    path: "/reservations",
    summary: "Books what was selected under the id, or, with a worker_id, the prompt in the body on that worker.",
    body: reservationBody,
    answers: { 201: reservationAnswer },
    errors: [404, 409, 429, 503],
    run: ({ service, body }) => {
      const booking = service.reserve(reserveRequestOf(body));
      const { selectionId, modelName, routingGroup, worker, endpoint, existing } = booking;
      const named = { selection_id: selectionId, model_name: modelName, routing_group: routingGroup };
      return { status: 201, value: { ...named, ...rankWire(worker), endpoint, existing } };
    },
  }),
  operation({
    id: "prefillComplete",
    method: "POST",
    path: `${BOOKING}/prefill_complete`,
    summary: "Says that the first token has come: the prefill is no load any more.",
    answers: { 200: doneAnswer },
    errors: [404],
    run: ({ service, segment }) => {
      service.prefillComplete(segment);
      return done();
    },
  }),
  operation({
    id: "outputBlock",
    method: "POST",
    path: `${BOOKING}/output_block`,
    summary: "Says that another block of output is in use.",
    body: outputBlockBody,
    isBodyOptional: true,
    answers: { 200: doneAnswer },
    errors: [404],
    run: ({ service, segment, body }) => {
      service.outputBlock(segment, body.decay_fraction);
      return done();
    },
  }),
  operation({
    id: "touch",
    method: "POST",
    path: `${BOOKING}/touch`,
    summary: "Renews the lease of a booking and does nothing else. An extension to Dynamo's API.",
    answers: { 200: doneAnswer },
    errors: [404],
    run: ({ service, segment }) => {
      service.touch(segment);
      return done();
    },
  }),
  operation({
    id: "reportCachedTokens",
    method: "POST",
    path: `${BOOKING}/cached_tokens`,
    summary: "Says how many tokens of the prompt the engine found cached. An extension to Dynamo's API.",
    body: cachedTokensBody,
    answers: { 200: doneAnswer },
    errors: [404],
    run: ({ service, segment, body }) => {
      service.reportCachedTokens(segment, body.cached_tokens);
      return done();
    },
  }),
  operation({
    id: "free",
    method: "DELETE",
    path: BOOKING,
    summary: "Ends a booking, and its prefill with it.",
    answers: { 200: doneAnswer },
    errors: [404],
    run: ({ service, segment }) => {
      if (!service.free(segment)) throw new UnknownBookingError(segment);
      return done();
    },
  }),
];
