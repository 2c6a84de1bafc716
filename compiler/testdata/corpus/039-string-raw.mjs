const path = String.raw`C:\new\table\${5}\u0041`;
const withVals = String.raw`a\n${1 + 1}b\t${'c'}`;
export default function () {
  return {
    path, withVals,
    lens: [path.length, String.raw`\``.length, String.raw`\
`.length],
    direct: String.raw({ raw: ['x', 'y', 'z'] }, 1, 2, 3),
    fromString: String.raw({ raw: 'test' }, 0, 1, 2),
    short: [String.raw({ raw: [] }, 1), String.raw({ raw: { length: 2, 0: 'p', 1: 'q' } }, '-'), String.raw({ raw: ['only'] })],
    regex: new RegExp(String.raw`^\d+\.\d{2}$`).test('12.34'),
    bad: (() => { try { return String.raw(undefined); } catch (e) { return e.name; } })(),
  };
}
