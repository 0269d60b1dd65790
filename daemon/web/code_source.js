// Source files that the reader has opened, kept in this browser (IndexedDB) by build and name: a folder is opened once.
import { md5 } from "./md5.js";

const STORE = "sources";
const MOST = 4 << 20; // bytes of a file that is kept
const SOURCE = /\.(c|h|cc|cpp|cxx|c\+\+|hh|hpp|hxx|inl|inc|ipp|tcc|s|asm|rs|go|f|f90|f95|d|m|mm|y|l|zig|adb)$/i;
const page = new Map(); // bytes, where the browser keeps nothing
const sources = new Map(); // what was read: {lines, md5}

/** The answer of a request of the database. */
const answered = (request) =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

let database;
async function store(mode) {
  if (!database) {
    const request = indexedDB.open("profd", 1);
    request.onupgradeneeded = () => request.result.createObjectStore(STORE);
    database = answered(request);
  }
  return (await database).transaction(STORE, mode).objectStore(STORE);
}

/** Keeps files for a build: of a folder, those that are sources. */
export async function keepSources(build, files) {
  for (const file of files) {
    if (file.size > MOST || (file.webkitRelativePath && !SOURCE.test(file.name))) continue;
    const key = `${build} ${file.name}`;
    const bytes = new Uint8Array(await file.arrayBuffer());
    page.set(key, bytes);
    sources.delete(key);
    const put = async () => answered((await store("readwrite")).put(bytes, key));
    await put().catch(() => {});
  }
}

/** Reads those files of a build that were opened. */
export async function readSources(build, names) {
  for (const name of names) {
    const key = `${build} ${name}`;
    if (sources.has(key)) continue;
    const read = async () => answered((await store("readonly")).get(key));
    const bytes = page.get(key) ?? (await read().catch(() => null));
    if (!bytes) continue;
    const lines = new TextDecoder()
      .decode(bytes)
      .replace(/\r?\n$/, "")
      .split(/\r?\n/);
    sources.set(key, { lines, md5: md5(bytes) });
  }
}

/** {lines, md5} of a file of a build that was read; undefined without one. */
export const sourceOf = (build, name) => sources.get(`${build} ${name}`);
