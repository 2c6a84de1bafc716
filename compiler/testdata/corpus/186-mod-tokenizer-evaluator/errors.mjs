export class LispError extends Error { name = 'LispError'; }
