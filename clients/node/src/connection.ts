/** What this package uses of a node-redis client or pool. */
export interface NodeRedis {
  readonly isReady?: boolean;
  sendCommand(words: string[], options?: { abortSignal?: AbortSignal }): Promise<unknown>;
  on(event: "error", listener: (error: Error) => void): unknown;
}

/** What this package uses of a node-redis cluster. */
export interface NodeRedisCluster {
  readonly masters: unknown;
  sendCommand(
    firstKey: string | undefined,
    isReadonly: boolean | undefined,
    words: string[],
    options?: { abortSignal?: AbortSignal },
  ): Promise<unknown>;
  on(event: "error", listener: (error: Error) => void): unknown;
}

/** What this package uses of an ioredis client or cluster. */
export interface IORedis {
  call(command: string, ...words: string[]): Promise<unknown>;
  on(event: "error", listener: (error: Error) => void): unknown;
}

/** Sends the words of one command, whose first key is `key`. */
export type SendCommand = (words: string[], key: string) => Promise<unknown>;

export type Redis = NodeRedis | NodeRedisCluster | IORedis | SendCommand;

/** A command on its way. Cancelling takes it back only if it has not been written yet. */
export interface Sent {
  reply: Promise<unknown>;
  cancel(): void;
}

export function connection(redis: Redis): (words: string[], key: string) => Sent {
  if (typeof redis === "function") return (words, key) => ({ reply: redis(words, key), cancel() {} });
  // Without a listener an emitter of "error" ends the process. The guard reports outages itself.
  redis?.on?.("error", () => {});
  if ("call" in redis) {
    return ([command, ...rest]) => ({ reply: redis.call(command!, ...rest), cancel() {} });
  }
  if ("masters" in redis) {
    return cancellable((words, key, options) => redis.sendCommand(key, false, words, options));
  }
  if (typeof redis.sendCommand === "function" && redis.sendCommand.length <= 2) {
    const whileAway = cancellable((words, _key, options) => redis.sendCommand(words, options));
    // On an open connection a command is written at once, and the signal would double what a call costs.
    return (words, key) =>
      redis.isReady ? { reply: redis.sendCommand(words), cancel() {} } : whileAway(words, key);
  }
  throw new TypeError("redis must be a node-redis or ioredis client, or a function that sends a command");
}

function cancellable(
  send: (words: string[], key: string, options: { abortSignal: AbortSignal }) => Promise<unknown>,
): (words: string[], key: string) => Sent {
  return (words, key) => {
    const abort = new AbortController();
    return { reply: send(words, key, { abortSignal: abort.signal }), cancel: () => abort.abort() };
  };
}
