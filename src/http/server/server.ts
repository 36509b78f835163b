/** What the service asks of the server that it is reached through, which Bun's is as well. */
export interface Server {
  /** Requests that are being answered. */
  readonly pendingRequests: number;
  /** The other end of the connection; null once it is closed. */
  requestIP(request: Request): { readonly address: string } | null;
  /** Lets the connection be idle for so long while this request is answered; 0: without end. */
  timeout(request: Request, seconds: number): void;
  /** Takes no more connections; resolves once all that is under way is answered or, with `true`, broken off. */
  stop(breakOff?: boolean): Promise<void>;
}
