const day = 24 * 60 * 60 * 1000;
export default function () {
  const born = new Date(Date.UTC(2024, 1, 28)), now = new Date("2024-03-01T12:00:00Z");
  return [(now - born) / day, now > born, born.toISOString(), now.getTime()];
}
