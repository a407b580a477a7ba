// Files that are dropped or chosen, with the folders they are in.

export interface Incoming {
  /** Relative to where it was dropped. */
  path: string;
  /** None for a folder that holds nothing. */
  file: File | null;
}

/** Has to be called while the event is handled: afterwards the browser tells nothing any more. */
export function dropped(transfer: DataTransfer): Promise<Incoming[]> {
  const entries = [...transfer.items].filter(({ kind }) => kind === "file").map((item) => item.webkitGetAsEntry());
  const plain = [...transfer.files];
  if (entries.some((entry) => entry === null)) return Promise.resolve(plain.map((file) => ({ path: file.name, file })));
  return Promise.all(entries.map((entry) => within(entry!))).then((found) => found.flat());
}

export const chosen = (files: FileList): Incoming[] => [...files].map((file) => ({ path: file.webkitRelativePath || file.name, file }));

async function within(entry: FileSystemEntry): Promise<Incoming[]> {
  const path = entry.fullPath.replace(/^\//, "");
  if (entry.isFile) {
    const file = await new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject));
    return [{ path, file }];
  }
  const found: Incoming[] = [];
  for (const inner of await everything(entry as FileSystemDirectoryEntry)) found.push(...(await within(inner)));
  return found.length > 0 ? found : [{ path, file: null }];
}

/** A reader gives a hundred at a time, and nothing when it is done. */
async function everything(folder: FileSystemDirectoryEntry): Promise<FileSystemEntry[]> {
  const reader = folder.createReader();
  const found: FileSystemEntry[] = [];
  for (;;) {
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
    if (some.length === 0) return found;
    found.push(...some);
  }
}
