import { isObject, type JsonObject } from "./body.js";
import type { Conversation } from "./conversation.js";

/** Writes the content of a message: a string, or a list of parts, or nothing. */
export function writeContent(to: Conversation, content: unknown): void {
  if (content === undefined || content === null) return;
  const parts: readonly unknown[] = Array.isArray(content) ? content : [content];
  if (parts.length === 1 && textOfPart(parts[0]) === "") return; // nothing is said, however it is written
  for (const part of parts) {
    if (to.isFull) break;
    writePart(to, part);
  }
}

/** Writes one part of a content, of any of the APIs. */
export function writePart(to: Conversation, part: unknown): void {
  const text = textOfPart(part);
  if (text !== undefined) to.text(text);
  else if (!isObject(part)) to.value(part);
  else if (part["type"] === "thinking" && typeof part["thinking"] === "string") to.reasoning(part["thinking"]);
  else if (part["type"] === "tool_use") to.call({ id: part["id"], name: part["name"], args: part["input"] });
  else writeMedia(to, part);
}

function writeMedia(to: Conversation, part: JsonObject): void {
  const media = mediaOf(part);
  if (media === undefined) to.value(part);
  else to.media(media.what, media.content);
}

function textOfPart(part: unknown): string | undefined {
  if (typeof part === "string") return part;
  if (!isObject(part) || typeof part["text"] !== "string") return undefined;
  const type = part["type"];
  return type === "text" || type === "input_text" || type === "output_text" ? part["text"] : undefined;
}

interface Media {
  readonly what: readonly unknown[];
  readonly content: string;
}

function mediaOf(part: JsonObject): Media | undefined {
  switch (part["type"]) {
    case "image_url":
      return referenced("image", part["image_url"], part);
    case "input_image":
      return typeof part["file_id"] === "string"
        ? media(["image", "file"], part["file_id"], part)
        : referenced("image", part["image_url"], part);
    case "audio_url":
      return referenced("audio", part["audio_url"], part);
    case "video_url":
      return referenced("video", part["video_url"], part);
    case "input_audio":
      return held("audio", part["input_audio"], "data", "format", part);
    case "file":
      return file(part["file"], part);
    case "input_file":
      return file(part, part);
    case "image":
      return sourced("image", part);
    case "document":
      return sourced("document", part);
    default:
      return undefined;
  }
}

/** A link or a data URL, bare or in an object. */
function referenced(kind: string, reference: unknown, part: JsonObject): Media | undefined {
  if (typeof reference === "string") return media([kind], reference, part);
  if (isObject(reference) && typeof reference["url"] === "string") {
    return media([kind], reference["url"], { ...part, detail: reference["detail"] ?? part["detail"] });
  }
  return undefined;
}

function held(kind: string, holder: unknown, field: string, format: string, part: JsonObject): Media | undefined {
  if (!isObject(holder) || typeof holder[field] !== "string") return undefined;
  return media([kind, field, holder[format]], holder[field], part);
}

function file(holder: unknown, part: JsonObject): Media | undefined {
  return (
    held("file", holder, "file_data", "filename", part) ??
    held("file", holder, "file_url", "filename", part) ??
    held("file", holder, "file_id", "filename", part)
  );
}

/** What Anthropic has in a source: bytes in base64, which are the same as in a data URL, a link, or a file. */
function sourced(kind: string, part: JsonObject): Media | undefined {
  const source = part["source"];
  if (!isObject(source)) return undefined;
  const { type, data, url, file_id: fileId, media_type: mediaType } = source;
  const what = kind === "document" ? [kind, part["title"], part["context"]] : [kind];
  if (type === "base64" && typeof data === "string") return media(what, `data:${mediaType};base64,${data}`, part);
  if (type === "url" && typeof url === "string") return media(what, url, part);
  if (type === "file" && typeof fileId === "string") return media([...what, "file"], fileId, part);
  return undefined; // such as a document in plain text, which counts as it stands
}

/** How sharp a picture is asked for changes its tokens; a uuid stands for one that the engine has seen. */
function media(what: readonly unknown[], content: string, { detail, uuid }: JsonObject): Media {
  return { what: [...what, detail ?? null, uuid ?? null], content };
}
