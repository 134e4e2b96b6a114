# Sidekiq on Redis: phases a, b and c. A retry waits for at least a second, to which Sidekiq adds up to nine of its own,
# and is then moved by a poller, so that phase d would measure that wait and is left out.
#
# Two worker processes of 25 threads, which was faster in trials than one of 50. A worker takes a job off its list
# before it runs it, and tells nobody that it is done: where a process dies, its jobs are lost. The start of the workers
# is not counted.
#
# usage: PEER=… REDIS_PORT=… JOBS=… ruby sidekiq.rb
require "io/wait"
require "json"
require "sidekiq/api"
require_relative "jobs"

PEER = ENV.fetch("PEER")
JOBS = Integer(ENV.fetch("JOBS", "10000"))
QUEUE = Sidekiq::Queue.new

def payload(number) = { "i" => number, "kind" => "bench", "note" => "x" * 64 }

def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

def report(phase, seconds)
  puts JSON.generate(peer: PEER, phase: phase, jobs: JOBS, seconds: seconds, rate: (JOBS / seconds).round)
end

def expect(what, found, wanted)
  abort "#{what}: found #{found}, expected #{wanted}" unless found == wanted
end

def clear = Sidekiq.redis(&:flushdb)

def fill
  (0...JOBS).each_slice(100) do |numbers|
    Sidekiq::Client.push_bulk("class" => Noop, "args" => numbers.map { |number| [payload(number)] })
  end
end

def one_by_one
  lanes = (0...16).map do |first|
    Thread.new { first.step(JOBS - 1, 16) { |number| Noop.perform_async(payload(number)) } }
  end
  lanes.each(&:join)
end

# How many jobs ended, as the workers tell Redis: every five seconds, and when they stop.
def processed = Sidekiq.redis { |redis| redis.get("stat:processed") }.to_i

# The seconds from the first job that ran to the last.
def drained
  ran, told = IO.pipe
  command = ["sidekiq", "-r", File.join(__dir__, "jobs.rb"), "-c", "25"]
  options = { told => told, out: File::NULL, err: File::NULL }
  workers = (1..2).map { Process.spawn({ "RAN" => told.fileno.to_s }, *command, options) }
  count, begun = ran.readpartial(4096).size, now
  count += ran.readpartial(4096).size while count < JOBS && ran.wait_readable(60)
  seconds = now - begun
  expect("runs", count, JOBS)
  seconds
ensure
  workers.each { |worker| Process.kill("TERM", worker) }
  workers.each { |worker| Process.wait(worker) }
end

[["a", method(:one_by_one)], ["b", method(:fill)]].each do |phase, work|
  clear
  begun = now
  work.call
  seconds = now - begun
  expect("jobs stored", QUEUE.size, JOBS)
  report(phase, seconds)
end
seconds = drained
expect("jobs left", QUEUE.size, 0)
expect("jobs done", processed, JOBS)
report("c", seconds)
clear
