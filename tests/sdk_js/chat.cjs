// One scenario against a server: node chat.cjs BASE_URL SCENARIO. What came out is printed as JSON.
const OpenAI = require("openai").default;

const WEATHER = {
  type: "function",
  function: {
    name: "weather",
    description: "The weather of a city",
    parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  },
};
const SKY = {
  type: "object",
  properties: { colour: { enum: ["blue", "grey"] }, clear: { type: "boolean" } },
  required: ["colour", "clear"],
  additionalProperties: false,
};
const messages = [{ role: "user", content: "Hello" }];
const asked = { model: "any", messages };

const scenarios = {
  async chat(client) {
    const answer = await client.chat.completions.create(asked);
    return { content: answer.choices[0].message.content, reason: answer.choices[0].finish_reason };
  },
  async stream(client) {
    let content = "";
    let usage = null;
    const stream = await client.chat.completions.create({
      ...asked,
      stream: true,
      stream_options: { include_usage: true },
    });
    for await (const chunk of stream) {
      content += chunk.choices[0]?.delta?.content ?? "";
      usage = chunk.usage ?? usage;
    }
    return { content, counted: usage.total_tokens === usage.prompt_tokens + usage.completion_tokens };
  },
  async tools(client) {
    const answer = await client.chat.completions.create({ ...asked, tools: [WEATHER] });
    const { content, tool_calls } = answer.choices[0].message;
    return { content, name: tool_calls[0].function.name, arguments: JSON.parse(tool_calls[0].function.arguments) };
  },
  async toolstream(client) {
    const runner = client.chat.completions.stream({ ...asked, tools: [WEATHER] });
    const final = await runner.finalChatCompletion();
    const { content, tool_calls } = final.choices[0].message;
    return { content, name: tool_calls[0].function.name, arguments: JSON.parse(tool_calls[0].function.arguments) };
  },
  async runner(client) {
    const cities = [];
    const tool = {
      type: "function",
      function: {
        ...WEATHER.function,
        parse: JSON.parse,
        function: ({ city }) => {
          cities.push(city);
          return "sunny";
        },
      },
    };
    const runner = client.chat.completions.runTools({ ...asked, tools: [tool] }, { maxChatCompletions: 1 });
    await runner.done();
    return { cities, roles: runner.messages.map((message) => message.role) };
  },
  async schema(client) {
    const answer = await client.chat.completions.parse({
      ...asked,
      seed: 5,
      max_tokens: 200,
      reasoning_effort: "none",
      response_format: { type: "json_schema", json_schema: { name: "sky", strict: true, schema: SKY } },
    });
    return JSON.parse(answer.choices[0].message.content);
  },
  async logprobs(client) {
    const answer = await client.chat.completions.create({ ...asked, logprobs: true, top_logprobs: 2, max_tokens: 4 });
    return answer.choices[0].logprobs.content.map((entry) => entry.top_logprobs.length);
  },
  async error(client) {
    try {
      await client.chat.completions.create({ ...asked, tool_choice: "required" });
    } catch (error) {
      return { status: error.status, kind: error.constructor.name };
    }
  },
};

async function main([baseURL, scenario]) {
  const client = new OpenAI({ baseURL, apiKey: "none", maxRetries: 0 });
  console.log(JSON.stringify(await scenarios[scenario](client)));
}

main(process.argv.slice(2));
