class StepError extends RangeError {
  constructor(step, cause) { super('step ' + step, { cause }); this.name = 'StepError'; }
}
const trace = [];
function step(n) {
  try {
    trace.push('in' + n);
    if (n === 3) throw new TypeError('deep');
    return step(n + 1);
  } catch (e) {
    if (n === 1) throw new StepError(n + '/' + trace.length, e);
    throw e;
  } finally { trace.push('out' + n); }
}
export default function () {
  const r = step(1);
  return [r, trace];
}
