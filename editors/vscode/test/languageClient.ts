/** A language client that notes how it was started. */

export const TransportKind = { stdio: 0 }
export const started: any[] = []

export class LanguageClient {
  constructor(readonly id: string, readonly name: string, readonly server: object, readonly options: object) {}
  async start() { started.push(this.server) }
  async stop() { started.pop() }
}
