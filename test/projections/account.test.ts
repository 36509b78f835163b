// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { account } from "../../projections/account.ts";
import type { NewEvent } from "../../src/log/event-log.ts";
import { given } from "../harness/in-process/number-and-fold-events.ts";

const user = { id: "9001", username: "acme", name: "Acme" };
const expires_at = "2026-11-20T12:00:00.000Z";

const authorized: NewEvent = { type: "AccountAuthorized", data: { user, scopes: ["dm.write"], expires_at } };
const refreshed: NewEvent = { type: "TokenRefreshed", data: { user_id: user.id, expires_at } };
const unlinked: NewEvent = { type: "AccountUnlinked", data: { user_id: user.id, revoked: false } };

function refreshFailed(dead: boolean): NewEvent {
  return { type: "TokenRefreshFailed", data: { user_id: user.id, reason: "invalid_grant", dead } };
}

test("no account is linked at first", () => {
  expect(given(account, [])).toEqual({ user: null, scopes: [], authorized: false });
});

test("an authorization links the account, and a later one replaces it", () => {
  expect(given(account, [authorized])).toEqual({ user, scopes: ["dm.write"], authorized: true });
  const renamed: NewEvent = {
    type: "AccountAuthorized",
    data: { user: { ...user, name: "B" }, scopes: [], expires_at },
  };
  expect(given(account, [authorized, renamed])).toMatchObject({ user: { name: "B" }, scopes: [] });
});

test("a dead grant ends the authorization but keeps the account", () => {
  expect(given(account, [authorized, refreshFailed(true)])).toMatchObject({ user, authorized: false });
});

test("a temporary refresh failure changes nothing", () => {
  expect(given(account, [authorized, refreshFailed(false)])).toMatchObject({ authorized: true });
});

test("a successful refresh restores the authorization of a linked account", () => {
  expect(given(account, [authorized, refreshFailed(true), refreshed])).toMatchObject({ authorized: true });
  expect(given(account, [refreshed])).toMatchObject({ user: null, authorized: false });
});

test("unlinking removes the account and its authorization", () => {
  expect(given(account, [authorized, unlinked])).toEqual({ user: null, scopes: [], authorized: false });
});
