import { OptionError, TraceError } from "../errors.js";
import { ByteSource, type Gunzip, gunzipWithWebStreams } from "./bytes.js";
import { LineSplitter } from "./lines.js";
import { RowParser, type TraceRequest } from "./row.js";

export type { Gunzip, TraceRequest };

export interface TraceOptions {
  /** What errors call the trace. Default `"trace"`. */
  readonly name?: string | undefined;
  /** Called for every bad row, which is then left out. Without it the first bad row ends the reading. */
  readonly onBadRow?: ((error: TraceError) => void) | undefined;
  /** Bytes of the longest line that is read. Default `LINE_BYTES_MAX_DEFAULT`. */
  readonly lineBytesMax?: number | undefined;
  /** Undoes gzip. Default: the runtime's `DecompressionStream`. */
  readonly gunzip?: Gunzip | undefined;
}

/** Room for the prompt of a million tokens in blocks of 16, each with an id of 15 digits, four times over. */
export const LINE_BYTES_MAX_DEFAULT = 4 * 1024 * 1024;

/**
 * Reads a trace request by request, in memory that does not grow with its length.
 *
 * A trace is JSON Lines, plain or gzipped. Mooncake form: `timestamp` (ms), `input_length`, `output_length` (tokens),
 * `hash_ids` (one a block of 512 tokens). Agent form: `timestamp`, `session_id`, `input_chars`, `output_chars`,
 * `hash_ids` (one a block of 256 characters). Each id stands for its block and all before it, and is used as the
 * sequence hash. Other fields and blank lines are passed over. The stream is cancelled when the reading ends early.
 *
 * @throws {TraceError} `KVROUTE_TRACE_…` for a bad row, broken gzip data and a trace without any request
 * @throws {OptionError} `KVROUTE_OPTION` if `lineBytesMax` is not a whole number of at least 1
 */
export async function* readTrace(
  stream: ReadableStream<Uint8Array>,
  options: TraceOptions = {},
): AsyncGenerator<TraceRequest, void, undefined> {
  const { name: file = "trace", onBadRow, lineBytesMax = LINE_BYTES_MAX_DEFAULT } = options;
  if (!Number.isInteger(lineBytesMax) || lineBytesMax < 1) {
    throw new OptionError(`Expected lineBytesMax to be a whole number of at least 1, got ${lineBytesMax}.`);
  }
  const parser = new RowParser(file);
  let line = 0;
  let requests = 0;
  for await (const bytes of readLines(stream, file, lineBytesMax, options.gunzip ?? gunzipWithWebStreams)) {
    line++;
    let request: TraceRequest | null;
    try {
      if (bytes === null) throw tooLong(file, line, lineBytesMax);
      request = parser.parse(bytes, line);
    } catch (error) {
      if (onBadRow === undefined || !(error instanceof TraceError)) throw error;
      onBadRow(error);
      continue;
    }
    if (request === null) continue;
    requests++;
    yield request;
  }
  if (requests > 0) return;
  const problem = line === 0 ? "the trace is empty" : `the trace holds no valid request in its ${line} line(s)`;
  throw new TraceError("KVROUTE_TRACE_EMPTY", { file }, problem);
}

/** Yields the lines of a stream, `null` for one that is too long. */
async function* readLines(
  stream: ReadableStream<Uint8Array>,
  file: string,
  lineBytesMax: number,
  gunzip: Gunzip,
): AsyncGenerator<Uint8Array | null, void, undefined> {
  const source = new ByteSource(stream);
  const splitter = new LineSplitter(lineBytesMax);
  let reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  let line = 0;
  try {
    const isGzip = await source.startsAsGzip();
    reader = (isGzip ? gunzip(source.bytes()) : source.bytes()).getReader();
    for (;;) {
      const chunk = await readChunk(reader, source, { file, line: line + 1 });
      for (const bytesOfLine of chunk === undefined ? splitter.end() : splitter.push(chunk)) {
        line++;
        yield bytesOfLine;
      }
      if (chunk === undefined) return;
    }
  } finally {
    await reader?.cancel().catch(() => undefined); // a decoder that has failed, fails again
    await source.cancel();
  }
}

/** Reads the next chunk, `undefined` at the end. A failure that is not the source's own is one of the gzip data. */
async function readChunk(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  source: ByteSource,
  place: { readonly file: string; readonly line: number },
): Promise<Uint8Array | undefined> {
  try {
    const { value } = await reader.read();
    return value;
  } catch (cause) {
    if (source.failure !== undefined) throw source.failure.error;
    throw new TraceError("KVROUTE_TRACE_GZIP", place, "the gzip data is cut short or damaged", { cause });
  }
}

function tooLong(file: string, line: number, lineBytesMax: number): TraceError {
  const problem = `expected a line of at most ${lineBytesMax} bytes, got a longer one`;
  return new TraceError("KVROUTE_TRACE_LINE_TOO_LONG", { file, line }, problem);
}
