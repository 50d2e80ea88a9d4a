// Conversations in the browser (IndexedDB), shared by its tabs.
import {type Conversation, merged} from './conversation';

const kName = 'kvasir', kStore = 'conversations';

function promised<T>(wanted: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    wanted.onsuccess = () => resolve(wanted.result);
    wanted.onerror = () => reject(wanted.error ?? new Error('the browser keeps no conversations'));
  });
}

export class Store {
  private readonly tabs = new BroadcastChannel(kName);

  private constructor(private readonly database: IDBDatabase) {}

  static async open(): Promise<Store> {
    const opening = indexedDB.open(kName, 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore(kStore, {keyPath: 'id'});
    return new Store(await promised(opening));
  }

  /** Calls `changed` with the id of a conversation that another tab has saved or removed. */
  onChange(changed: (id: string) => void): void {
    this.tabs.onmessage = (event) => changed(String(event.data));
  }

  private objects(mode: IDBTransactionMode): IDBObjectStore {
    return this.database.transaction(kStore, mode, {durability: 'relaxed'}).objectStore(kStore);
  }

  /** The latest first. */
  async all(): Promise<Conversation[]> {
    const all = await promised(this.objects('readonly').getAll()) as Conversation[];
    return all.sort((a, b) => b.changed - a.changed);
  }

  get(id: string): Promise<Conversation | undefined> {
    return promised(this.objects('readonly').get(id));
  }

  /** Saves, and keeps messages that another tab has added meanwhile. */
  async save(conversation: Conversation): Promise<void> {
    const objects = this.objects('readwrite');
    const other = await promised(objects.get(conversation.id)) as Conversation | undefined;
    await promised(objects.put(other ? merged(conversation, other) : conversation));
    this.tabs.postMessage(conversation.id);
  }

  async remove(id: string): Promise<void> {
    await promised(this.objects('readwrite').delete(id));
    this.tabs.postMessage(id);
  }
}
