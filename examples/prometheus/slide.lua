-- For redis_exporter's option -script: what INFO slide counts, as redis_script_values{key="..."}.
local metrics = {}
for name, value in redis.call('INFO', 'slide'):gmatch('(slide_[%a_]+):(%d+)') do
    metrics[#metrics + 1] = name
    metrics[#metrics + 1] = value
end
return metrics
