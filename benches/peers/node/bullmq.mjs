// BullMQ on Redis. One worker with a concurrency of 50; completed jobs are removed. The failing path
// waits 1 ms: an immediate retry turned out slower.
// Environment: PEER, REDIS_PORT, JOBS.
import { Queue, Worker } from 'bullmq';
import { concurrently, expect, inBatches, jobs, payload, report, signal } from './common.mjs';

const peer = process.env.PEER;
const connection = { host: '127.0.0.1', port: Number(process.env.REDIS_PORT), maxRetriesPerRequest: null };
const keep = { removeOnComplete: true };

async function emptyQueue(name) {
  const queue = new Queue(name, { connection });
  await queue.waitUntilReady();
  await queue.obliterate({ force: true });
  return queue;
}

async function drained(queue, count, handler) {
  const all = signal();
  let completed = 0;
  const worker = new Worker(queue.name, handler, { connection, concurrency: 50, autorun: false });
  worker.on('completed', () => { if (++completed === count) all.fire(); });
  worker.on('error', (error) => console.error(error.message));
  await worker.waitUntilReady();
  const start = performance.now();
  worker.run();
  await all.fired;
  const end = performance.now();
  await worker.close();
  expect('jobs left', await queue.getJobCountByTypes(), 0);
  return [start, end];
}

const fill = (queue, count, options) =>
  inBatches(count, (numbers) => queue.addBulk(numbers.map((i) => ({ name: 'job', data: payload(i), opts: options }))));

{
  const queue = await emptyQueue('single');
  const start = performance.now();
  await concurrently(jobs, 16, (i) => queue.add('job', payload(i), keep));
  report(peer, 'a', jobs, start);
  expect('jobs stored', await queue.getWaitingCount(), jobs);
  await queue.obliterate({ force: true });
}
{
  const queue = await emptyQueue('batches');
  const start = performance.now();
  await fill(queue, jobs, keep);
  report(peer, 'b', jobs, start);
  expect('jobs stored', await queue.getWaitingCount(), jobs);
  await queue.obliterate({ force: true });
}
{
  const queue = await emptyQueue('drain');
  await fill(queue, jobs, keep);
  report(peer, 'c', jobs, ...(await drained(queue, jobs, async () => {})));
}
{
  const count = Math.ceil(jobs / 2);
  const queue = await emptyQueue('failing');
  await fill(queue, count, { ...keep, attempts: 3, backoff: { type: 'fixed', delay: 1 } });
  let runs = 0;
  const times = await drained(queue, count, async (job) => {
    runs += 1;
    if (job.attemptsMade < 2) throw new Error('planned');
  });
  expect('runs', runs, 3 * count);
  report(peer, 'd', count, ...times);
}
process.exit(0);
