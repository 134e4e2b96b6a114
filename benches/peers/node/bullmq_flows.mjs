// Flows of BullMQ on Redis: chains of 10 jobs, and 100 jobs with one after them. A job waits for its children, so that
// a chain is a job with a child with a child. From the first flow that is added until the last job is completed.
// Environment: PEER, REDIS_PORT, JOBS.
import { FlowProducer, Queue, Worker } from 'bullmq';
import { concurrently, expect, jobs, payload, report, signal } from './common.mjs';

const peer = process.env.PEER;
const connection = { host: '127.0.0.1', port: Number(process.env.REDIS_PORT), maxRetriesPerRequest: null };
const opts = { removeOnComplete: true };

const job = (queueName, i, children) => ({ name: 'job', queueName, data: payload(i), opts, children });
const chain = (queueName, first, length) => {
  let flow = job(queueName, first);
  for (let i = 1; i < length; i += 1) flow = job(queueName, first + i, [flow]);
  return flow;
};
const group = (queueName, first, length) =>
  job(queueName, first + length - 1, Array.from({ length: length - 1 }, (_, i) => job(queueName, first + i)));

async function measured(phase, name, width, flows, length, flow) {
  const queue = new Queue(name, { connection });
  await queue.waitUntilReady();
  await queue.obliterate({ force: true });
  const producer = new FlowProducer({ connection });
  const all = signal();
  let completed = 0;
  const worker = new Worker(name, async () => {}, { connection, concurrency: 50, autorun: false });
  worker.on('completed', () => { if (++completed === flows * length) all.fire(); });
  worker.on('error', (error) => console.error(error.message));
  await worker.waitUntilReady();
  const start = performance.now();
  await concurrently(flows, width, (number) => producer.add(flow(name, number * length, length)));
  worker.run();
  await all.fired;
  report(peer, phase, flows * length, start);
  await worker.close();
  expect('jobs left', await queue.getJobCountByTypes(), 0);
}

await measured('w', 'chains', 16, Math.ceil(jobs / 10), 10, chain);
await measured('g', 'groups', 4, Math.ceil(jobs / 100), 101, group);
process.exit(0);
