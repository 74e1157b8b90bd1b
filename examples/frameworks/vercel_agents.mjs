// An agent of the Vercel AI SDK that asks two others at once; the models are scripted.
//
// npm install ai@6 zod@4 @opentelemetry/sdk-trace-node@2 @opentelemetry/otlp-transformer@0.223
// node examples/frameworks/vercel_agents.mjs run.otlp.json
// baton show run.otlp.json
//
// Node looks for packages in the folders above this file: copy it to where you installed them.

import { writeFileSync } from "node:fs";
import { JsonTraceSerializer } from "@opentelemetry/otlp-transformer";
import {
  InMemorySpanExporter,
  NodeTracerProvider,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-node";
import { ToolLoopAgent, tool } from "ai";
import { MockLanguageModelV3 } from "ai/test";
import { z } from "zod";

const spans = new InMemorySpanExporter();
new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] }).register();

let calls = 0;

/** A model that says its lines in order: a text, or a list of [tool, input] pairs. */
function scripted(...lines) {
  return new MockLanguageModelV3({
    doGenerate: async () => {
      const line = lines.shift();
      const done = typeof line === "string";
      const content = done
        ? [{ type: "text", text: line }]
        : line.map(([toolName, input]) => ({
            type: "tool-call",
            toolCallId: `call-${++calls}`,
            toolName,
            input: JSON.stringify(input),
          }));
      const reason = done ? "stop" : "tool-calls";
      return {
        content,
        finishReason: { unified: reason, raw: reason },
        usage: { inputTokens: { total: 50, noCache: 50 }, outputTokens: { total: 10, text: 10 } },
        warnings: [],
      };
    },
  });
}

/** An agent; its `functionId` is its name in the spans. */
function agent(name, tools, ...lines) {
  return new ToolLoopAgent({
    model: scripted(...lines),
    tools,
    experimental_telemetry: {
      isEnabled: true,
      functionId: name,
      metadata: { sessionId: "chat-1" },
    },
  });
}

const population = tool({
  description: "Population of a city.",
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => `${city}: 231800`,
});

/** A tool that asks a scout. */
function ask(name, city, answer) {
  return tool({
    description: `Ask the ${name}.`,
    inputSchema: z.object({ question: z.string() }),
    execute: async ({ question }) => {
      const scout = agent(name, { population }, [["population", { city }]], answer);
      return (await scout.generate({ prompt: question })).text;
    },
  });
}

const guide = agent(
  "guide",
  {
    ask_north: ask("north_scout", "Porto", "Porto is bigger."),
    ask_inland: ask("inland_scout", "Braga", "Braga is older."),
  },
  [
    ["ask_north", { question: "Size of Porto?" }],
    ["ask_inland", { question: "Age of Braga?" }],
  ],
  "Porto is bigger, Braga older.",
);
console.log((await guide.generate({ prompt: "Compare Porto and Braga." })).text);
writeFileSync(process.argv[2], JsonTraceSerializer.serializeRequest(spans.getFinishedSpans()));
