// One request from its prompt to its end: which of two engines is best, why, and what each call changes.
//
//     npm run example select-and-reserve.js

import { type Selection, SelectionService } from "kvroute";

const service = new SelectionService();
service.workers.add({ workerId: "engine-a", endpoint: "http://10.0.0.1:8000", blockSize: 16, totalKvBlocks: 16_384 });
service.workers.add({ workerId: "engine-b", endpoint: "http://10.0.0.2:8000", blockSize: 16, totalKvBlocks: 16_384 });

// In a program, token ids come from the model's tokenizer. Here a system prompt of 960 tokens and two questions.
const systemPrompt = Array.from({ length: 960 }, (_, at) => at);
const firstPrompt = [...systemPrompt, ...Array.from({ length: 100 }, (_, at) => 5_000 + at)];
const secondPrompt = [...systemPrompt, ...Array.from({ length: 140 }, (_, at) => 9_000 + at)];

// Somebody's earlier request: engine-a computed the system prompt for it, and has finished.
service.reserve({ selectionId: "earlier", workerId: "engine-a", tokenIds: firstPrompt });
service.prefillComplete("earlier");
service.free("earlier");

// 1. Select: the best worker, and why. Nothing is booked yet, but the selection is kept under its id for two minutes.
const selection = service.select({ selectionId: "chat-1", tokenIds: secondPrompt, session: "alice", explain: true });
console.log(`chat-1 goes to ${selection.worker.workerId}: ${selection.endpoint}`);
console.log(`  ${selection.cachedTokens} of ${selection.islTokens} tokens are cached there\n`);
printExplanation(selection);

// 2. Reserve: the booking is a lease. The same call again gives the same booking, so that it can be repeated.
const booking = service.reserve({ selectionId: "chat-1" });
console.log(`\nbooked on ${booking.worker.workerId}, ${booking.effectivePrefillTokens} tokens to compute`);
printLoads("after reserve");
console.log(`  again: existing is ${service.reserve({ selectionId: "chat-1" }).existing}`);

// 3. The first token has come: prefill is over, and the engine has said how much of the prompt it found cached.
service.prefillComplete("chat-1");
service.reportCachedTokens("chat-1", 960);
printLoads("after prefillComplete");

// 4. Sixteen tokens more fill a block of output. Each call also renews the lease.
service.outputBlock("chat-1");
printLoads("after outputBlock");

// 5. The answer is complete: all that was booked is given back.
service.free("chat-1");
printLoads("after free");

function printExplanation({ explanation }: Selection): void {
  if (explanation === undefined) return;
  console.log(`what the policy ${explanation.policy} saw, in tokens:`);
  for (const { worker, isChosen, terms } of explanation.candidates) {
    const { cost, waitTokens, missedTokens, tax } = terms;
    const mark = isChosen ? "->" : "  ";
    console.log(
      `${mark} ${worker.workerId}  cost ${cost} = wait ${waitTokens} + miss ${missedTokens} + ${tax} * ${missedTokens}`,
    );
  }
}

function printLoads(when: string): void {
  for (const { loads } of service.loads()) {
    for (const { worker, activePrefillTokens, activeBlocks, activeRequests } of loads) {
      console.log(
        `  ${when.padEnd(21)} ${worker.workerId}  ${activePrefillTokens} tokens of prefill, ${activeBlocks} blocks, ${activeRequests} requests`,
      );
    }
  }
}
