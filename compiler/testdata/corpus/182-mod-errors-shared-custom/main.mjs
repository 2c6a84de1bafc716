import { withdraw } from './bank.mjs';
import { Insufficient, BankError, classify } from './errors.mjs';
const log = [];
for (const [bal, amt] of [[10, 5], [10, 50], [10, -1], [10, 'x']]) {
  try { log.push(withdraw(bal, amt)); } catch (e) { log.push([classify(e), e instanceof BankError, e.message]); }
}
export default function () {
  if (log.length !== 4 || log[1][0] !== 'insufficient') return log;
  try { withdraw(1, 2); } catch (e) { if (!(e instanceof Insufficient)) return 'wrong'; throw new BankError(`wrapped: ${e.message}`, { cause: e }); }
  return 'unreachable';
}
