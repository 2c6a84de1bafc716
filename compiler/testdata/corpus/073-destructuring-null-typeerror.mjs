const users = [{ id: 1, address: { city: 'Oslo' } }, { id: 2, address: undefined }, { id: 3, address: null }];
const city = ({ address: { city = 'unknown' } = {} }) => city;
const firstTwo = users.slice(0, 2).map(city);
export default function () {
  const out = [...firstTwo];
  for (const u of users) out.push(city(u));
  return out;
}
