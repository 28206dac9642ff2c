const encoder = new TextEncoder();
const EVENTS = 64;
const CONVERSATIONS = 16;
const TURN = "The quick brown fox jumps over the lazy dog, as it did in the last turn and will do in the next. ";

export const URL_OF_CHAT = "http://kvroute/v1/chat/completions";

/** Bodies of so many bytes: conversations that share their system prompt alone, as a client sends them. */
export function bodiesOf(bytes: number): readonly string[] {
  return Array.from({ length: CONVERSATIONS }, (_, conversation) => {
    const messages = [{ role: "system", content: "You are brief." }];
    for (let length = 0; length < bytes - 300; length += TURN.length + 45) {
      messages.push({ role: messages.length % 2 === 1 ? "user" : "assistant", content: `${conversation} ${TURN}` });
    }
    return JSON.stringify({ model: "m", messages, stream: true });
  });
}

/** The events of an answer: one a token, then what it took, then the end. */
export const answerEvents: readonly Uint8Array[] = [
  ...Array.from({ length: EVENTS }, (_, index) => {
    const finish_reason = index === EVENTS - 1 ? "stop" : null;
    return {
      id: "chatcmpl-1",
      object: "chat.completion.chunk",
      choices: [{ index: 0, delta: { content: " word" }, finish_reason }],
    };
  }),
  {
    choices: [],
    usage: { prompt_tokens: 1_000, completion_tokens: EVENTS, prompt_tokens_details: { cached_tokens: 0 } },
  },
]
  .map((event) => encoder.encode(`data: ${JSON.stringify(event)}\n\n`))
  .concat(encoder.encode("data: [DONE]\n\n"));

/** An engine in memory, whose answers come event by event as they are read: what is timed is what stands before it. */
export async function engineFetch(_url: string, _init: RequestInit): Promise<Response> {
  let next = 0;
  const body = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        const event = answerEvents[next++];
        if (event === undefined) controller.close();
        else controller.enqueue(event);
      },
    },
    { highWaterMark: 0 },
  );
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
}

/** Reads a response as a client does. Returns how many bytes came. */
export async function drain(response: Response): Promise<number> {
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  let bytes = 0;
  for (let next = await reader.read(); next.value !== undefined; next = await reader.read()) bytes += next.value.length;
  return bytes;
}
