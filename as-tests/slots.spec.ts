import { found, makeRoom } from "../assembly/layout";
import * as slots from "../assembly/slots";

describe("slots", () => {
  it("works", () => {
    expect(found(100, 65536)).toBe(0);
    const slot = slots.take();
    expect(slot.number).toBe(1);
    const id = slots.idOf(slot);
    expect(id).toBe(1);
    slots.give(slot);
    expect(slots.some(slots.resolve(id))).toBe(false);
  });
});
