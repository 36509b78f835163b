-- For wrk: posts the body that is given behind "--", and prints what came of it as one line of JSON.
-- A number behind the body: from so many addresses in turn.
function init(args)
  wrk.method = "POST"
  wrk.body = args[1]
  wrk.headers["content-type"] = "application/json"
  local addresses = tonumber(args[2] or "1")
  if addresses == 1 then return end
  local requests = {}
  for i = 1, addresses do
    local ip = string.format("10.%d.%d.%d", math.floor(i / 65536) % 256, math.floor(i / 256) % 256, i % 256)
    requests[i] = wrk.format(nil, nil, nil, (args[1]:gsub("203%.0%.113%.7", ip)))
  end
  local next = 0
  request = function()
    next = next % addresses + 1
    return requests[next]
  end
end

function done(summary, latency, requests)
  local errors = summary.errors
  local failures = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  io.write(string.format(
    '\n{"requests":%d,"perSecond":%f,"p50Ms":%f,"p99Ms":%f,"failures":%d}\n',
    summary.requests,
    summary.requests / (summary.duration / 1e6),
    latency:percentile(50) / 1e3,
    latency:percentile(99) / 1e3,
    failures
  ))
end
