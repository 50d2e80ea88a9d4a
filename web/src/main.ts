// Starts the page: its two views, the theme, and the key that the server may want.
import {onKeyWanted} from './api';
import {CacheView} from './cache/cache_view';
import {ChatView} from './chat/chat_view';
import {byId, element} from './dom';

type View = 'chat' | 'cache' | 'both';
const kViews: View[] = ['chat', 'cache', 'both'];

const isServed = location.protocol !== 'file:';
const root = document.documentElement;

function currentView(): View {
  const wanted = location.hash.slice(1) as View;
  if (kViews.includes(wanted)) return wanted;
  return isServed ? 'chat' : 'cache';
}

function askForKey(): Promise<string | null> {
  const dialog = byId<HTMLDialogElement>('key-dialog'), input = byId<HTMLInputElement>('key');
  input.value = '';
  dialog.returnValue = '';
  if (!dialog.open) dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener('close', () => resolve(dialog.returnValue === 'send' ? input.value.trim() : null), {once: true});
  });
}

function setTheme(theme: string): void {
  root.dataset['theme'] = theme;
  localStorage.setItem('kvasir-theme', theme);
  byId('theme').textContent = theme === 'dark' ? 'Light' : 'Dark';
}

const cache = new CacheView(isServed, () => currentView() !== 'chat', () => byId<HTMLSelectElement>('model').value);

function showView(): void {
  const view = currentView();
  root.dataset['view'] = view;
  for (const each of kViews) {
    const link = byId(`to-${each}`);
    if (each === view) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  cache.shownOrHidden();
}

async function start(): Promise<void> {
  const dark = matchMedia('(prefers-color-scheme: dark)').matches;
  setTheme(localStorage.getItem('kvasir-theme') ?? (dark ? 'dark' : 'light'));
  byId('theme').addEventListener('click', () => {
    setTheme(root.dataset['theme'] === 'dark' ? 'light' : 'dark');
    cache.restyle();
  });
  window.addEventListener('hashchange', showView);
  onKeyWanted(askForKey);
  showView();
  Object.assign(window, {kvasirCache: () => cache.numbers()});
  if (!isServed) return byId('chat').replaceChildren(element('p', {class: 'empty'}, 'This page was opened from a file. kvasir serve gives it with a chat.'));
  await ChatView.start();
}

void start();
