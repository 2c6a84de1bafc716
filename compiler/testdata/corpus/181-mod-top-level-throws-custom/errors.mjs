export class ConfigError extends Error {
  constructor(key, value) { super(`bad ${key}: ${value}`); this.name = 'ConfigError'; this.key = key; }
}
