-- One line of JSON at the end of a run of wrk; times in microseconds.
function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '{"requests":%d,"duration_us":%d,"p50_us":%d,"p99_us":%d,"p999_us":%d,"max_us":%d,' ..
    '"status_errors":%d,"other_errors":%d}\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
    latency:percentile(99.9), latency.max, errors.status,
    errors.connect + errors.read + errors.write + errors.timeout))
end
