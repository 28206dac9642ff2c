/** What reads single headers: a `HeaderList`, or the `Headers` of the Web. Names are in lower case. */
export interface HeaderReader {
  get(name: string): string | null;
}

/**
 * Names and values of headers, in their order and as often as they came. Unlike the `Headers` of the Web it checks nothing and
 * sorts nothing, and is made and copied in a tenth of their time: names have to be in lower case, and are legal where they came
 * from something that has checked them.
 */
export class HeaderList implements HeaderReader, Iterable<readonly [string, string]> {
  #names: string[];
  #values: string[];

  private constructor(names: string[], values: string[]) {
    this.#names = names;
    this.#values = values;
  }

  /** Copies names, which are in lower case, and values. */
  static of(headers: Iterable<readonly [string, string]> = []): HeaderList {
    const list = new HeaderList([], []);
    for (const [name, value] of headers) list.append(name, value);
    return list;
  }

  /** Copies names and values that stand in turn, as Node has the headers of a message; names in any case. */
  static ofRaw(raw: readonly string[]): HeaderList {
    const list = new HeaderList([], []);
    for (let at = 0; at + 1 < raw.length; at += 2)
      list.append((raw[at] as string).toLowerCase(), raw[at + 1] as string);
    return list;
  }

  /** Counts the headers, each as often as it is there. */
  get size(): number {
    return this.#names.length;
  }

  /** Gives a header's values with commas between them, `null` if it is not there. */
  get(name: string): string | null {
    const first = this.#names.indexOf(name);
    if (first < 0) return null;
    let value = this.#values[first] as string;
    for (let at = this.#names.indexOf(name, first + 1); at >= 0; at = this.#names.indexOf(name, at + 1)) {
      value += `, ${this.#values[at]}`;
    }
    return value;
  }

  has(name: string): boolean {
    return this.#names.includes(name);
  }

  /** Whether any of the headers is there: in one pass, however many names are looked for. */
  hasAny(names: ReadonlySet<string>): boolean {
    for (const name of this.#names) if (names.has(name)) return true;
    return false;
  }

  /** Adds a header behind those that are there. */
  append(name: string, value: string): void {
    this.#names.push(name);
    this.#values.push(value);
  }

  /** Puts a value in the place of all that a header has. */
  set(name: string, value: string): void {
    this.delete(name);
    this.append(name, value);
  }

  delete(name: string): void {
    for (let at = this.#names.lastIndexOf(name); at >= 0; at = this.#names.lastIndexOf(name)) {
      this.#names.splice(at, 1);
      this.#values.splice(at, 1);
    }
  }

  copy(): HeaderList {
    return new HeaderList(this.#names.slice(), this.#values.slice());
  }

  *[Symbol.iterator](): Generator<readonly [string, string], void, undefined> {
    for (let at = 0; at < this.#names.length; at++) yield [this.#names[at] as string, this.#values[at] as string];
  }

  /** Gives pairs of names and values, as `Headers` take them. */
  toPairs(): [string, string][] {
    return this.#names.map((name, at) => [name, this.#values[at] as string]);
  }

  /** Gives names and values in turn, as Node takes them. */
  toRaw(): string[] {
    const raw: string[] = [];
    for (let at = 0; at < this.#names.length; at++) raw.push(this.#names[at] as string, this.#values[at] as string);
    return raw;
  }
}
