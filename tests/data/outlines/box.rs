pub struct Box<T> {
}
impl<T> Show for Box<T> {
    pub async fn get(&self) -> T {
    }
}
const MAX: u8 = 3;
pub(crate) enum Kind { A }
mod tests {
    fn works() {}
}
macro_rules! twice {
}
