export default { fetch: () => new Response("imported") };
