// MD5 of RFC 1321, which browsers do not have. DWARF 5 names source files by it; it protects nothing.
const TURNS = [
  [7, 12, 17, 22],
  [5, 9, 14, 20],
  [4, 11, 16, 23],
  [6, 10, 15, 21],
];
const SINES = Int32Array.from({ length: 64 }, (_, i) => Math.floor(2 ** 32 * Math.abs(Math.sin(i + 1))) | 0);

/** The message, a bit 1, zeros, and the number of its bits, in blocks of 64 bytes. */
function padded(bytes) {
  const all = new DataView(new ArrayBuffer(64 * Math.ceil((bytes.length + 9) / 64)));
  new Uint8Array(all.buffer).set(bytes);
  all.setUint8(bytes.length, 0x80);
  all.setUint32(all.byteLength - 8, (bytes.length << 3) >>> 0, true);
  all.setUint32(all.byteLength - 4, Math.floor(bytes.length / 2 ** 29), true);
  return all;
}

/** A step's function of b, c and d, and which word of the block it takes. */
function mixed(i, b, c, d) {
  if (i < 16) return [(b & c) | (~b & d), i];
  if (i < 32) return [(d & b) | (~d & c), (5 * i + 1) % 16];
  if (i < 48) return [b ^ c ^ d, (3 * i + 5) % 16];
  return [c ^ (b | ~d), (7 * i) % 16];
}

/** bytes: a Uint8Array. Gives 32 hexadecimal digits. O(bytes). */
export function md5(bytes) {
  const all = padded(bytes);
  const state = Int32Array.of(0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476);
  for (let at = 0; at < all.byteLength; at += 64) {
    let [a, b, c, d] = state;
    for (let i = 0; i < 64; i++) {
      const [f, word] = mixed(i, b, c, d);
      const sum = (a + f + SINES[i] + all.getInt32(at + 4 * word, true)) | 0;
      const turn = TURNS[i >> 4][i % 4];
      [a, d, c, b] = [d, c, b, (b + ((sum << turn) | (sum >>> (32 - turn)))) | 0];
    }
    [a, b, c, d].forEach((value, i) => (state[i] += value));
  }
  return [...new Uint8Array(state.buffer)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
