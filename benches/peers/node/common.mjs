// What the three programs share.

export const jobs = Number(process.env.JOBS ?? 20000);

export const payload = (i) => ({ i, kind: 'bench', note: 'x'.repeat(64) });

/** Calls `one` for 0..count, `width` at a time. */
export async function concurrently(count, width, one) {
  let next = 0;
  const task = async () => {
    while (next < count) await one(next++);
  };
  await Promise.all(Array.from({ length: width }, task));
}

/** Calls `many` with the numbers 0..count in batches of 100, one after another. */
export async function inBatches(count, many) {
  for (let start = 0; start < count; start += 100) {
    const size = Math.min(100, count - start);
    await many(Array.from({ length: size }, (_, offset) => start + offset));
  }
}

/** Ends the program without a figure when something does not add up. */
export function expect(what, found, wanted) {
  if (found === wanted) return;
  console.error(`${what}: found ${found}, expected ${wanted}`);
  process.exit(1);
}

/** Prints one measurement. */
export function report(peer, phase, count, startedAt, endedAt = performance.now()) {
  const seconds = (endedAt - startedAt) / 1000;
  console.log(JSON.stringify({ peer, phase, jobs: count, seconds, rate: Math.round(count / seconds) }));
}

/** A promise, and the function that fulfils it. */
export function signal() {
  let fire;
  const fired = new Promise((resolve) => { fire = resolve; });
  return { fire, fired };
}

export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
