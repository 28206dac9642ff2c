/** Reads the data of each event in a text of whole server-sent events, whichever way its lines end. */
export function eventData(events: string): string[] {
  const all: string[] = [];
  let data: string | undefined;
  for (const line of events.split(/\r\n|\r|\n/)) {
    if (line === "") {
      if (data !== undefined) all.push(data);
      data = undefined;
    } else if (line === "data" || line.startsWith("data:")) {
      const value = line.slice(line[5] === " " ? 6 : 5);
      data = data === undefined ? value : `${data}\n${value}`;
    }
  }
  return all;
}
