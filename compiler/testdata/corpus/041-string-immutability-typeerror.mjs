const title = 'readonly';
const copy = [...title].map((c, i) => (i ? c : c.toUpperCase())).join('');
export default function () {
  const log = [copy, title.at(0)];
  title[0] = 'X';
  return log;
}
