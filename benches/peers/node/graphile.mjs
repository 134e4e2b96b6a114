// graphile-worker on PostgreSQL. The worker fetches up to 500 jobs ahead and completes them in
// batches. Its waiting time after a failure, exp(attempts) seconds, stands in its SQL and cannot be
// set; a trigger of this program pulls the next run back to now, which flatters it.
// Environment: PEER, PG_URL, JOBS.
import pg from 'pg';
import { Logger, makeWorkerUtils, run } from 'graphile-worker';
import { concurrently, expect, inBatches, jobs, pause, payload, report, signal } from './common.mjs';

const peer = process.env.PEER;
const connectionString = process.env.PG_URL;
const table = 'graphile_worker._private_jobs';
const logger = new Logger(() => () => {});
const pool = new pg.Pool({ connectionString, max: 20 });
pool.on('error', () => {});
await pool.query('drop schema if exists graphile_worker cascade');
const utils = await makeWorkerUtils({ pgPool: pool, logger });
await utils.migrate();

const stored = async () => (await pool.query(`select count(*)::int as n from ${table}`)).rows[0].n;
const clear = async () => {
  await pool.query(`truncate ${table}`);
  await pool.query(`vacuum analyze ${table}`);
};
const fill = (count) => inBatches(count, (numbers) =>
  utils.addJobs(numbers.map((i) => ({ identifier: 'job', payload: payload(i), maxAttempts: 3 }))));

async function drained(count, handler) {
  const all = signal();
  let done = 0;
  const task = async (data, helpers) => {
    await handler(helpers.job);
    if (++done === count) all.fire();
  };
  const worker = {
    connectionString, concurrentJobs: 50, maxPoolSize: 20, pollInterval: 20, logger,
    localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0,
  };
  const start = performance.now();
  const runner = await run({ preset: { worker }, taskList: { job: task }, logger, noHandleSignals: true });
  await all.fired;
  while (await stored()) await pause(5);
  const end = performance.now();
  await runner.stop();
  return [start, end];
}

await clear();
let start = performance.now();
await concurrently(jobs, 16, (i) => utils.addJob('job', payload(i)));
report(peer, 'a', jobs, start);
expect('jobs stored', await stored(), jobs);

await clear();
start = performance.now();
await fill(jobs);
report(peer, 'b', jobs, start);
expect('jobs stored', await stored(), jobs);

await clear();
await fill(jobs);
report(peer, 'c', jobs, ...(await drained(jobs, async () => {})));

await pool.query(`create function graphile_worker.at_once() returns trigger language plpgsql as
  $$ begin new.run_at := now(); return new; end $$`);
await pool.query(`create trigger at_once before update on ${table} for each row
  when (old.locked_by is not null and new.locked_by is null and new.last_error is not null)
  execute function graphile_worker.at_once()`);
await clear();
const count = Math.ceil(jobs / 2);
await fill(count);
let runs = 0;
const times = await drained(count, async (job) => {
  runs += 1;
  if (job.attempts < 3) throw new Error('planned');
});
expect('runs', runs, 3 * count);
report(peer, 'd', count, ...times);
process.exit(0);
