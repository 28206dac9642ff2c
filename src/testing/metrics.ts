import type { EngineStats, Histogram } from "../sim/engine.js";

/** Writes what an engine has counted as vLLM does, in the text format of Prometheus. */
export function metricsText(stats: EngineStats, model: string): string {
  const labels = `model_name="${model.replace(/[\\"]/g, "\\$&").replace(/\n/g, "\\n")}",engine="0"`;
  const { finished } = stats;
  const success = Object.entries(finished).map(([reason, count]) => [`finished_reason="${reason}"`, count] as const);
  const size = [`block_size="${stats.blockSize}",num_gpu_blocks="${stats.numGpuBlocks}"`, 1] as const;
  const usage = stats.numActiveBlocks / stats.numGpuBlocks;
  return [
    ...simple("num_requests_running", "gauge", "Requests that run.", labels, [["", stats.numRunning]]),
    ...simple("num_requests_waiting", "gauge", "Requests that wait.", labels, [["", stats.numWaiting]]),
    ...simple("kv_cache_usage_perc", "gauge", "The part of the KV cache in use; 1 is all.", labels, [["", usage]]),
    ...simple("cache_config_info", "gauge", "The KV cache.", labels, [size]),
    ...counter("prefix_cache_queries", "Tokens looked up in the cache.", labels, stats.prefixCacheQueries),
    ...counter("prefix_cache_hits", "Tokens found in the cache.", labels, stats.prefixCacheHits),
    ...counter("prompt_tokens", "Tokens of prompts that were prefilled.", labels, stats.promptTokens),
    ...counter("generation_tokens", "Tokens that were generated.", labels, stats.generationTokens),
    ...counter("num_preemptions", "Requests that were preempted.", labels, stats.preemptions),
    ...simple("request_success_total", "counter", "Requests that ended.", labels, success),
    ...histogram("time_to_first_token_seconds", "Time to the first token.", labels, stats.timeToFirstTokenSeconds),
    ...histogram("inter_token_latency_seconds", "Time between tokens.", labels, stats.interTokenLatencySeconds),
    ...histogram("e2e_request_latency_seconds", "Time of a request.", labels, stats.e2eRequestLatencySeconds),
    "",
  ].join("\n");
}

function counter(name: string, help: string, labels: string, value: number): string[] {
  return simple(`${name}_total`, "counter", help, labels, [["", value]]);
}

function simple(
  name: string,
  type: string,
  help: string,
  labels: string,
  values: readonly (readonly [extra: string, value: number])[],
): string[] {
  const lines = values.map(([extra, value]) => `vllm:${name}{${labels}${extra && `,${extra}`}} ${value}`);
  return [`# HELP vllm:${name} ${help}`, `# TYPE vllm:${name} ${type}`, ...lines];
}

function histogram(name: string, help: string, labels: string, { bounds, counts, sum, count }: Histogram): string[] {
  let below = 0;
  const buckets = [...bounds, "+Inf"].map((bound, at) => {
    below += counts[at] ?? 0;
    return `vllm:${name}_bucket{${labels},le="${bound}"} ${below}`;
  });
  const totals = [`vllm:${name}_sum{${labels}} ${sum}`, `vllm:${name}_count{${labels}} ${count}`];
  return [`# HELP vllm:${name} ${help}`, `# TYPE vllm:${name} histogram`, ...buckets, ...totals];
}
