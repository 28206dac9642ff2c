/** The first decision: a service with two workers, and a prompt of 1,024 tokens. */
export function decide({ SelectionService }) {
  const service = new SelectionService();
  for (const workerId of ["a", "b"]) service.workers.add({ workerId, endpoint: `http://${workerId}`, blockSize: 16 });
  return service.select({ tokenIds: Uint32Array.from({ length: 1_024 }, (_, at) => at) }).worker;
}
