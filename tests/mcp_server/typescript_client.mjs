// The official TypeScript SDK as a client: does what a client can do, and prints what it was given as JSON.
// The only argument is JSON: {url} of a server over HTTP, or {command, args, env, cwd} of one over stdio.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema, LoggingMessageNotificationSchema } from "@modelcontextprotocol/sdk/types.js";

const target = JSON.parse(process.argv[2]);
const transport = target.url ? new StreamableHTTPClientTransport(new URL(target.url)) : new StdioClientTransport(target);
const client = new Client({ name: "typescript", version: "1" }, { capabilities: { elicitation: {} } });
const report = { asked: [], answers: {}, errors: {}, progress: [], log: [] };

let action = "decline";
client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
  report.asked.push(params.message);
  return { action, ...(action === "accept" ? { content: {} } : {}) };
});
client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => report.log.push(params));

async function refused(name, work) {
  try {
    await work();
  } catch (error) {
    report.errors[name] = { code: error.code, data: error.data, message: error.message };
  }
}

async function call(name, args, options) {
  const result = await client.callTool({ name, arguments: args }, undefined, options);
  report.answers[name] = [...(report.answers[name] ?? []), result];
  return result;
}

await client.connect(transport);
report.server = client.getServerVersion();
report.capabilities = client.getServerCapabilities();
report.instructions = client.getInstructions();
report.tools = (await client.listTools()).tools.map((each) => each.name); // from now on, results are checked by schema
await client.setLoggingLevel("warning");
await client.ping();

const kept = JSON.parse((await call("remember", { text: "Tea is served at four ☕", tags: ["tea"] })).content[0].text);
await call("search_memories", { query: "when is tea served?" });
await call("context", { query: "when is tea served?" });
await call("timeline", {});
await call("get_memories", { ids: [kept.id] });
await call("forget", { ids: [kept.id] });
await call("remember", { text: "Anna likes tea", tags: ["tea", "people"] });

const texts = Array.from({ length: 1100 }, (_, at) => ({ text: `number ${at} of many` }));
const options = { onprogress: (progress) => report.progress.push([progress.progress, progress.total]) };
await call("remember_many", { memories: texts }, options);
const ids = report.answers.remember_many[0].structuredContent.remembered.map((each) => each.id);
for (action of ["decline", "cancel", "accept"]) {
  await call("forget", { ids });
}

report.resources = (await client.listResources()).resources.map((each) => each.uri);
report.templates = (await client.listResourceTemplates()).resourceTemplates.map((each) => each.uriTemplate);
report.overview = JSON.parse((await client.readResource({ uri: "nacre://overview" })).contents[0].text);
report.tea = JSON.parse((await client.readResource({ uri: "nacre://tag/tea" })).contents[0].text);
await refused("resource", () => client.readResource({ uri: "nacre://tag/nobody" }));
await refused("tool", () => client.callTool({ name: "nothing", arguments: {} }));

const ref = { type: "ref/resource", uri: "nacre://tag/{tag}" };
report.completion = (await client.complete({ ref, argument: { name: "tag", value: "t" } })).completion;
const prompt = { type: "ref/prompt", name: "recall" };
report.tags = (await client.complete({ ref: prompt, argument: { name: "tag", value: "" } })).completion;
report.prompts = (await client.listPrompts()).prompts.map((each) => each.name);
report.recall = await client.getPrompt({ name: "recall", arguments: { topic: "what does Anna like?", tag: "people" } });

await client.close();
process.stdout.write(JSON.stringify(report));
