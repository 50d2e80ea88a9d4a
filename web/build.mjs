// Builds src/serve/page/page.html: one file with everything inline. The same sources give the same bytes; `--check`
// compares with the file that is there and changes nothing.
import {createHash} from 'node:crypto';
import {readFileSync, writeFileSync} from 'node:fs';
import {dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';
import {build} from 'esbuild';

const here = dirname(fileURLToPath(import.meta.url));
const target = join(here, '../src/serve/page/page.html');
const kMostBytes = 200_000;
const kNotice = '<!-- Kvasir, Apache-2.0; sources in web/. Contains uPlot, (c) Leon Sorokin, MIT licence: https://github.com/leeoniya/uPlot -->';

async function bundle(entry, options = {}) {
  const {outputFiles} = await build({
    absWorkingDir: here, entryPoints: [entry], bundle: true, minify: true, write: false, charset: 'utf8', legalComments: 'none',
    logLevel: 'warning', target: 'es2022', ...options,
  });
  return outputFiles[0].text.trim();
}

const hash = (text) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
const script = (await bundle('src/main.ts', {format: 'iife'})).replaceAll('</script', '<\\/script');
const style = await bundle('src/style.css');
// Only the server that gave the page is asked for anything; the browser refuses the rest.
const policy = `default-src 'none'; connect-src 'self'; img-src data:; script-src ${hash(script)}; style-src ${hash(style)}; ` +
  "base-uri 'none'; form-action 'none'";
const parts = {
  policy: `<meta http-equiv="Content-Security-Policy" content="${policy}">`,
  style: `<style>${style}</style>`,
  script: `<script>${script}</script>`,
};
let page = readFileSync(join(here, 'index.html'), 'utf8').replace('<!doctype html>\n', `<!doctype html>\n${kNotice}\n`);
for (const [name, part] of Object.entries(parts)) page = page.replace(`<!-- ${name} -->`, () => part);

const size = Buffer.byteLength(page);
if (size > kMostBytes) throw new Error(`the page has ${size} bytes, and ${kMostBytes} are allowed`);
if (process.argv.includes('--check')) {
  if (readFileSync(target, 'utf8') !== page) throw new Error('src/serve/page/page.html is not what web/ builds: npm run build');
} else {
  writeFileSync(target, page);
}
console.log(`src/serve/page/page.html: ${size} bytes`);
