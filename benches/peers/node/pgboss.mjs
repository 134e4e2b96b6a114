// pg-boss on PostgreSQL. Four pollers that take 50 jobs each, and take more at once while there are
// any; its shortest poll is half a second, which would otherwise decide everything.
// Environment: PEER, PG_URL, JOBS.
import pg from 'pg';
import { PgBoss } from 'pg-boss';
import { concurrently, expect, inBatches, jobs, pause, payload, report, signal } from './common.mjs';

const peer = process.env.PEER;
const connectionString = process.env.PG_URL;
const database = new pg.Pool({ connectionString, max: 2 });
await database.query('drop schema if exists pgboss cascade');
const boss = new PgBoss({ connectionString, max: 20 });
boss.on('error', (error) => console.error(error.message));
await boss.start();

const unfinished = async (queue) => {
  const text = "select count(*)::int as n from pgboss.job where name = $1 and state <> 'completed'";
  return (await database.query(text, [queue])).rows[0].n;
};
const newQueue = (name) => boss.createQueue(name, { retryLimit: 2, retryDelay: 0, retryBackoff: false });
const fill = (queue, count) => inBatches(count, (numbers) =>
  boss.insert(queue, numbers.map((i) => ({ data: payload(i) }))));

async function drained(queue, count, handler) {
  const all = signal();
  let done = 0;
  await database.query('vacuum analyze pgboss.job');
  const options = {
    pollingIntervalSeconds: 0.5, batchSize: 50, localConcurrency: 4, burstWhenBatchFull: true,
    includeMetadata: true, perJobResults: true,
  };
  const start = performance.now();
  await boss.work(queue, options, async (batch) => {
    const results = batch.map((job) => ({ id: job.id, status: handler(job) ? 'completed' : 'failed' }));
    done += results.filter((result) => result.status === 'completed').length;
    if (done >= count) all.fire();
    return results;
  });
  await all.fired;
  while (await unfinished(queue)) await pause(5);
  const end = performance.now();
  await boss.offWork(queue);
  return [start, end];
}

await newQueue('single');
let start = performance.now();
await concurrently(jobs, 16, (i) => boss.send('single', payload(i)));
report(peer, 'a', jobs, start);
expect('jobs stored', await unfinished('single'), jobs);
await boss.deleteAllJobs('single');

await newQueue('batches');
start = performance.now();
await fill('batches', jobs);
report(peer, 'b', jobs, start);
expect('jobs stored', await unfinished('batches'), jobs);

report(peer, 'c', jobs, ...(await drained('batches', jobs, () => true)));

await newQueue('failing');
const count = Math.ceil(jobs / 2);
await fill('failing', count);
let runs = 0;
const times = await drained('failing', count, (job) => {
  runs += 1;
  return job.retryCount >= 2;
});
expect('runs', runs, 3 * count);
report(peer, 'd', count, ...times);
await boss.stop({ graceful: false });
process.exit(0);
