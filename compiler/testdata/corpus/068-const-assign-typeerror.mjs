const limit = 3;
const list = [];
list.push(limit);
const log = [];
export default function () {
  for (let i = 0; i < limit; i++) log.push(i);
  try { limit++; } catch (e) { log.push(e.name); }
  try { for (const i = 0; i < 2; i++) log.push('once'); } catch (e) { log.push(e instanceof TypeError); }
  if (log.length !== 6) return log;
  limit = 4;
  return 'unreachable';
}
