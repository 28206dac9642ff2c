import { SESSION_ID_LENGTH_MAX } from "../selection/sessions.js";
import type { HeaderList, HeaderReader } from "./header-list.js";

/** What named a session, and its name. */
export interface Session {
  readonly id: string;
  /** A header, or a field of the body, or `fingerprint`. */
  readonly source: string;
}

/**
 * Headers by which clients and other gateways name sessions, in the order in which they are believed. `x-request-id` is not
 * among them: it would make each request a session of its own.
 */
export const SESSION_HEADERS = [
  "x-session-affinity",
  "x-session-id",
  "x-dynamo-session-id",
  "x-smg-routing-key",
  "x-claude-code-session-id",
  "session_id",
  "session-id",
  "thread-id",
  "conversation_id",
] as const;

const BAGGAGE = "baggage";
const BAGGAGE_KEY = "session.id";
const AFFINITY_HEADERS: ReadonlySet<string> = /* @__PURE__ */ new Set([...SESSION_HEADERS, BAGGAGE]);

export const CREDENTIALS = ["authorization", "x-api-key", "api-key"];

/**
 * Finds the session of a request: what a header names, or the body, or else the fingerprint of its conversation. An id of
 * more than `SESSION_ID_LENGTH_MAX` characters is none, and keeps what follows from being asked: a wrong session would be
 * worse than none.
 */
export function sessionOf(headers: HeaderList, body: unknown, fingerprint: string): Session | undefined {
  const named = namedByHeaders(headers) ?? namedByBody(body) ?? { id: fingerprint, source: "fingerprint" };
  return named.id === "" || named.id.length > SESSION_ID_LENGTH_MAX ? undefined : named;
}

function namedByHeaders(headers: HeaderList): Session | undefined {
  if (!headers.hasAny(AFFINITY_HEADERS)) return undefined;
  for (const source of SESSION_HEADERS) {
    const id = headers.get(source)?.trim();
    if (id) return { id, source };
  }
  const member = membersOf(headers.get(BAGGAGE)).find(isSessionMember);
  const id = member === undefined ? "" : sessionIn(member);
  return id === "" ? undefined : { id, source: `${BAGGAGE} ${BAGGAGE_KEY}` };
}

function namedByBody(body: unknown): Session | undefined {
  return (
    named("prompt_cache_key", field(body, "prompt_cache_key")) ??
    named("previous_response_id", field(body, "previous_response_id")) ??
    named("metadata.user_id", field(field(body, "metadata"), "user_id")) ??
    named("user", field(body, "user"))
  );
}

function named(source: string, id: unknown): Session | undefined {
  return typeof id === "string" && id !== "" ? { id, source } : undefined;
}

function field(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}

/**
 * Names the tenant of a request by the SHA-256 of its credentials, which are not kept. Empty without any, and where the
 * runtime has no SHA-256: in a page that came over HTTP, which has one tenant anyway.
 */
export async function tenantOf(headers: HeaderReader): Promise<string> {
  const credentials = CREDENTIALS.map((name) => headers.get(name));
  const digester = globalThis.crypto?.subtle;
  if (digester === undefined || credentials.every((credential) => credential === null)) return "";
  const digest = await digester.digest("SHA-256", new TextEncoder().encode(JSON.stringify(credentials)));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Copies headers without those that name sessions, which are not for engines. Of baggage, the rest stays. */
export function withoutAffinityHeaders(headers: HeaderList): HeaderList {
  const kept = headers.copy();
  if (!headers.hasAny(AFFINITY_HEADERS)) return kept;
  for (const name of SESSION_HEADERS) kept.delete(name);
  const members = membersOf(headers.get(BAGGAGE));
  if (!members.some(isSessionMember)) return kept;
  const others = members.filter((member) => !isSessionMember(member));
  if (others.length === 0) kept.delete(BAGGAGE);
  else kept.set(BAGGAGE, others.join(","));
  return kept;
}

// W3C Baggage: members between commas, each a name, `=`, a value in percent encoding, and properties behind semicolons.

function membersOf(baggage: string | null): readonly string[] {
  return baggage === null ? [] : baggage.split(",").map((member) => member.trim());
}

function isSessionMember(member: string): boolean {
  return member.includes("=") && member.slice(0, member.indexOf("=")).trim() === BAGGAGE_KEY;
}

function sessionIn(member: string): string {
  const value = (member.slice(member.indexOf("=") + 1).split(";", 1)[0] as string).trim();
  try {
    return decodeURIComponent(value);
  } catch {
    return value; // a stray percent sign
  }
}
