// Prints the ids that llama.cpp gives for texts: {"file", "texts"} as JSON on stdin, a list of lists of ids on stdout.
// Run in a folder where node-llama-cpp is installed.
import {readFileSync} from "node:fs";
import {createRequire} from "node:module";
import {pathToFileURL} from "node:url";

const installed = createRequire(process.cwd() + "/package.json").resolve("node-llama-cpp");
const {getLlama, LlamaLogLevel} = await import(pathToFileURL(installed));
const {file, texts} = JSON.parse(readFileSync(0, "utf8"));
const llama = await getLlama({gpu: false, build: "never", skipDownload: true, logLevel: LlamaLogLevel.disabled});
const model = await llama.loadModel({modelPath: file, vocabOnly: true});
const ids = texts.map(text => Array.from(model.tokenize(text, true)));
process.stdout.write(JSON.stringify(ids), () => process.exit(0));
