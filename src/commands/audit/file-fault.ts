/** The file to be imported cannot be read as a log; told with its line. Nothing was imported. */
export class FileFault extends Error {
  override readonly name = "FileFault";
  constructor(line: number, reason: string) {
    super(`line ${line}: ${reason}; nothing was imported`);
  }
}
