class ValidationError extends Error {
  name = 'ValidationError';
  constructor(field, problem) { super(`${field}: ${problem}`); this.field = field; }
}
const rules = [['age', (v) => Number.isInteger(v) || 'must be an integer'], ['name', (v) => v.length > 0 || 'is empty']];
const validate = (o) => { for (const [f, rule] of rules) { const r = rule(o[f]); if (r !== true) throw new ValidationError(f, r); } return o; };
const ok = validate({ age: 3, name: 'x' });
export default function () {
  return [ok, validate({ age: 3.5, name: '' })];
}
