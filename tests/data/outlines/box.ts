import x from 'y'
// function no() {}
/* class No {
*/
export default class Box<T> extends Base {
  private size = 3
  constructor(a: string) {
    if (a) {
    }
  }
  async get(key: string): Promise<T> {
    return run(key)
  }
}
export interface Shape {
}
export type Key = 'a' | 'b'
export const load = async (x: number): Promise<void> => {
}
const LIMIT = 3
export async function go() {
}
