export const log = ['log body'];
