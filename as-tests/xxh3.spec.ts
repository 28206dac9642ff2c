import { hash, hash64, hashTwo, use } from "../assembly/xxh3";
import { BLOCK_BYTES, add, begin, copyStripe, finish } from "../assembly/xxh3-long";
import { avalanche, fold, foldHere, mix, mixBoth, seed, swapBytes } from "../assembly/xxh3-mix";

// Every length and more seeds are held against vectors from outside; here are the ends of each class, and the parts.

const BYTES: usize = 8192;
/** What stands before and behind an input, so that a read beyond it would show. */
const MARGIN: usize = 64;
const input: usize = memory.data(8192 + 2 * 64) + MARGIN;

/** Fills the input as the vectors have it, and its surroundings with a byte. */
function fill(margin: u8, length: usize = BYTES): void {
  memory.fill(input - MARGIN, margin, BYTES + 2 * MARGIN);
  for (let i: usize = 0; i < length; i++) store<u8>(input + i, <u8>(i * i * 31 + i * 131 + 146));
}

function expectHashes(length: usize, plain: u64, under1337: u64, underMax: u64): void {
  for (let margin: u8 = 0; margin < 3; margin++) {
    fill(margin * 0x55, length);
    use(0);
    expect(hash(input, length)).toBe(plain);
    use(1337);
    expect(hash(input, length)).toBe(under1337);
    use(u64.MAX_VALUE);
    expect(hash(input, length)).toBe(underMax);
  }
}

describe("xxh3", () => {
  it("no bytes have a hash", () => {
    expectHashes(0, 3244421341483603138, 15128690059815094969, 5478965906984379733);
  });

  it("one to three bytes are read from their ends and the middle", () => {
    expectHashes(1, 7878720862229920401, 12987570174987667318, 16179134780692733914);
    expectHashes(2, 3717511477225471479, 11396281604070502499, 4719220867580794388);
    expectHashes(3, 7135588337338157983, 14666430830659342890, 11973395456916518733);
  });

  it("four to eight bytes are read as two halves of a word", () => {
    expectHashes(4, 17789710077115236765, 3834364697038123709, 10007267115498453451);
    expectHashes(7, 16010753749797048704, 87695408594981611, 500679226186613937);
    expectHashes(8, 11782836524170267092, 4860555441793244773, 14081539966236718513);
  });

  it("nine to sixteen bytes are read as two words", () => {
    expectHashes(9, 17009795788137801456, 6946907286140999183, 18326253596535778208);
    expectHashes(16, 1664614863271020902, 6807730638593966918, 1563142324036250419);
  });

  it("17 to 128 bytes are read in pairs from both ends", () => {
    expectHashes(17, 11348863766228850797, 14900859461288808871, 3728728196131124261);
    expectHashes(32, 12995177144494313962, 406012060158861686, 12851335462701407017);
    expectHashes(33, 6107273696429790287, 4925269324524783594, 15461982661679094090);
    expectHashes(64, 6899043335896697387, 13615139193681713600, 17522703007139880334);
    expectHashes(65, 10039976627250470981, 5484420225841859630, 4384783203529826404);
    expectHashes(128, 14132735972856271205, 8217254460211538688, 796192514199691752);
  });

  it("129 to 240 bytes are read one after another, and the last once more", () => {
    expectHashes(129, 10290511377317180753, 16245504091492575645, 3553729627964688348);
    expectHashes(144, 11672114447863723383, 16530006142772286341, 9959181822050912008);
    expectHashes(145, 303033674100311964, 11091604125859002267, 15049667077380345682);
    expectHashes(240, 5890443686770023182, 9799920747135296866, 1629132431901090586);
  });

  it("longer inputs are read in stripes, which are scrambled after each block that is not the end", () => {
    expectHashes(241, 13104486326442358887, 14417995607193629232, 414040180683896779);
    expectHashes(256, 7938262127375634220, 8351121342610019611, 5356481518095566770);
    expectHashes(1024, 1658824701017372566, 15884333662289927899, 962333867497206497);
    expectHashes(1025, 10314954966424995284, 12827887063630477771, 12844653036612662968);
    expectHashes(2048, 11400947283368138060, 11419637698859336265, 15280932698761628503);
    expectHashes(4096, 16403408775492961154, 14628595617842357504, 17006775131076701895);
  });

  it("a seed stays until another comes", () => {
    fill(0);
    use(1337);
    expect(seed).toBe(1337);
    const first = hash(input, 300);
    hash(input, 5);
    hash(input, 2000);
    expect(hash(input, 300)).toBe(first);
    use(7);
    expect(hash(input, 300)).not.toBe(first);
  });

  it("64 bytes have the same hash the short way", () => {
    for (let shift: usize = 0; shift < 40; shift++) {
      fill(<u8>shift);
      use(<u64>shift * 0x9e3779b97f4a7c15);
      expect(hash64(input + shift)).toBe(hash(input + shift, 64));
    }
  });

  it("two words have the hash of their sixteen bytes under the seed of chains, whatever the seed is now", () => {
    fill(0);
    for (let shift: usize = 0; shift < 40; shift++) {
      use(1337);
      const expected = hash(input + shift, 16);
      use(shift);
      expect(hashTwo(load<u64>(input + shift), load<u64>(input + shift, 8))).toBe(expected);
    }
  });

  it("a long input in parts has the hash of the whole, wherever the blocks are cut", () => {
    fill(0);
    use(99);
    for (let length: usize = 1025; length < 5000; length += 61) {
      const whole = hash(input, length);
      for (let cut = BLOCK_BYTES; cut < length; cut += BLOCK_BYTES) {
        begin();
        add(input, cut);
        expect(finish(input + cut, length - cut, length)).toBe(whole);
      }
    }
  });

  it("the end of an input looks back to what stands before it", () => {
    fill(0);
    use(5);
    const whole = hash(input, 2049);
    begin();
    add(input, 2048);
    copyStripe(input + 4096 - 64, input + 2048 - 64); // as where the next part comes to another place
    store<u8>(input + 4096, load<u8>(input + 2048));
    expect(finish(input + 4096, 1, 2049)).toBe(whole);
  });

  it("a product is folded from all four products of halves, with their carries", () => {
    expect(fold(0, u64.MAX_VALUE)).toBe(0);
    expect(fold(1, 0x123456789abcdef0)).toBe(0x123456789abcdef0);
    expect(fold(1 << 32, 1 << 32)).toBe(1);
    expect(fold(u64.MAX_VALUE, u64.MAX_VALUE)).toBe(u64.MAX_VALUE); // 1 and 2 ** 64 - 2
    expect(fold(u64.MAX_VALUE, 2)).toBe(u64.MAX_VALUE); // 2 ** 64 - 2 and 1
    expect(fold(0xffffffff, 0xffffffff)).toBe(0xfffffffe00000001);
    expect(foldHere(u64.MAX_VALUE, u64.MAX_VALUE)).toBe(u64.MAX_VALUE);
  });

  it("two mixes at once come to the sum of each", () => {
    fill(0);
    const secret = input + 1000;
    for (let at = input; at < input + 900; at += 7) {
      const both = mixBoth(at, secret, at + 16, secret + 48);
      const sum = i64x2.extract_lane(both, 0) + i64x2.extract_lane(both, 1);
      expect<u64>(sum).toBe(mix(at, secret, 0) + mix(at + 16, secret + 48, 0));
    }
  });

  it("bytes are turned round, and a sum is spread", () => {
    expect(swapBytes(0x0102030405060708)).toBe(0x0807060504030201);
    expect(avalanche(0)).toBe(0);
    expect(avalanche(1)).toBe(0x165667919e3779f9 ^ 0x16566791);
  });
});
