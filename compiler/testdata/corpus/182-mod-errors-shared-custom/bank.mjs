import { Insufficient, BankError } from './errors.mjs';
export function withdraw(balance, amount) {
  if (typeof amount !== 'number') throw new TypeError('amount');
  if (amount < 0) throw new BankError('negative');
  if (amount > balance) throw new Insufficient(amount - balance);
  return balance - amount;
}
