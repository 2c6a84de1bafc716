export class BankError extends Error { get name() { return 'BankError'; } }
export class Insufficient extends BankError { constructor(short) { super(`short by ${short}`); this.short = short; } }
export const classify = (e) => (e instanceof Insufficient ? 'insufficient' : e instanceof BankError ? 'bank' : e.name);
