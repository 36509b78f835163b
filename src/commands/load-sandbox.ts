/** The one door to the sandbox: loaded when it is wanted, so that a production install needs none of its libraries. */
export async function loadSandbox() {
  const [{ startSandbox }, { settingsOf }] = await Promise.all([
    import("../sandbox/sandbox.ts"),
    import("../sandbox/settings.ts"),
  ]);
  return { startSandbox, settingsOf };
}
