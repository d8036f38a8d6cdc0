"""What the server works out by itself, many streams in one call, so that no payload travels.

Each script answers one text: whole numbers, so many for each key, separated by blanks. Numbers are
written with %.0f, since Lua would write large ones with an exponent.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.model.observation import Ints

KEYS_PER_CALL = 200  # a script blocks the server: some milliseconds at most
STREAM, MISSING, OTHER_TYPE = 1, 0, 2

# kind, entries left, entries ever added, last id (ms, seq), first id at or after ARGV[i] (ms, seq)
REACH = """
local out = {}
for i, key in ipairs(KEYS) do
  local info = redis.pcall('XINFO', 'STREAM', key)
  if info.err then
    local kind = string.sub(info.err, 1, 9) == 'WRONGTYPE' and '2' or '0'
    out[i] = kind .. ' 0 0 0 0 0 0'
  else
    local field = {}
    for n = 1, #info, 2 do field[info[n]] = info[n + 1] end
    local last, first = field['last-generated-id'], '0-0'
    local left = field['length']
    if left > 0 and ARGV[i] ~= '' then
      local found = redis.call('XRANGE', key, ARGV[i], '+', 'COUNT', 1)
      if #found > 0 then first = found[1][1] end
    end
    out[i] = string.format('1 %.0f %.0f ', left, field['entries-added'] or -1)
      .. string.gsub(last, '-', ' ') .. ' ' .. string.gsub(first, '-', ' ')
  end
end
return table.concat(out, ' ')
"""
REACH_NUMBERS = 7

# From the id ARGV[2i-1] at most ARGV[2i] entries: how many, first id (ms, seq), last id (ms, seq)
CUT = """
local out = {}
for i, key in ipairs(KEYS) do
  local from, want, got = ARGV[2 * i - 1], tonumber(ARGV[2 * i]), 0
  local first, last = '0-0', '0-0'
  while got < want do
    local found = redis.pcall('XRANGE', key, from, '+', 'COUNT', math.min(1000, want - got))
    if found.err or #found == 0 then break end
    if got == 0 then first = found[1][1] end
    got, last = got + #found, found[#found][1]
    from = '(' .. last
  end
  out[i] = string.format('%.0f ', got)
    .. string.gsub(first, '-', ' ') .. ' ' .. string.gsub(last, '-', ' ')
end
return table.concat(out, ' ')
"""
CUT_NUMBERS = 5


# The group ARGV[3i-2] of each key is at the id ARGV[3i-1], after ARGV[3i] entries; no numbers.
TELL = """
for i, key in ipairs(KEYS) do
  local group, id, entries = ARGV[3 * i - 2], ARGV[3 * i - 1], ARGV[3 * i]
  local done = redis.pcall('XGROUP', 'SETID', key, group, id, 'ENTRIESREAD', entries)
  if done.err and string.sub(done.err, 1, 7) == 'NOGROUP' then
    redis.pcall('XGROUP', 'CREATE', key, group, id, 'ENTRIESREAD', entries)
  end
end
return ''
"""


def run_script(
    client: Any, script: str, numbers: int, keys: Sequence[str], arguments: Sequence[Any],
    command: str = "EVAL_RO",
) -> Ints:  # fmt: skip
    """The answers of all keys, one row each, in one round trip; arguments are spread evenly."""
    if not keys:
        return np.empty((0, numbers), dtype=np.int64)
    each = len(arguments) // len(keys)
    pipeline = client.pipeline(transaction=False)
    for at in range(0, len(keys), KEYS_PER_CALL):
        some = keys[at : at + KEYS_PER_CALL]
        pipeline.execute_command(
            command, script, len(some), *some,
            *arguments[at * each : (at + len(some)) * each],
        )  # fmt: skip
    words = b" ".join(pipeline.execute()).split()
    # An id's halves are unsigned: what does not fit shows as negative.
    unsigned = np.array([int(word) & 2**64 - 1 for word in words], dtype=np.uint64)
    return unsigned.view(np.int64).reshape(len(keys), numbers)
